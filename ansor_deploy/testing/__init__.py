"""Contracts as tests: what a rule or a measurer must keep, for pytest to collect.

A test of a user's own rule or measurer subclasses a contract, as the project's own tests do; a
contract is plain functions and `assert`, and needs no pytest to be imported.
"""
