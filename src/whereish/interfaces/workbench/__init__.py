"""The workbench: a page on loopback on which people see what an epsilon means.

`app` puts the routes of the views together, `security` stands before them.  Each view is a module
of `views` with a function
``routes(bench)``, and a file of the same subject in ``page/src/views``.  They share `bench`
(mechanisms that were built, jobs, uploads), `wire` (JSON in, binary out) and nothing else.
"""
