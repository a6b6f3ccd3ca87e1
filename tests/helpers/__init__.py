"""Helpers that tests share: models, programs, registries, processes, boards, build systems."""
