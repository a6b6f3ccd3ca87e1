"""Replaces `on_cpu` in run workers: candidates are timed for moments only.

Outputs are checked as usual; the times are too short to be used, and no test is about them.
"""

from __future__ import annotations

from ansor_deploy.measure import head_to_head, on_cpu, runner

__all__ = ["on_cpu"]

runner.MIN_REPEAT_MS = 0.2
head_to_head.SLOT_SECONDS = 2e-4
head_to_head.PULSES = 2
head_to_head.PULSE_SECONDS = head_to_head.WAKING_SECONDS = 2e-4
