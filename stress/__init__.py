"""What must survive faults, by command: races, kills, full disks, damage, mutants."""
