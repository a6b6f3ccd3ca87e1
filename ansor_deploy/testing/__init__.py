"""Contracts as tests: the properties that a rule or a measurer must have, for pytest to collect.

A test of a user's own rule or measurer subclasses a contract, as the project's own tests do. A
contract consists of methods with `assert`, and can be imported without pytest.
"""
