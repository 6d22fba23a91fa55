"""Laws for places that are rounded at random to one of the four centres around them."""
