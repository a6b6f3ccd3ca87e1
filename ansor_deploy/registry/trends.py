"""Trends by week: what was built and measured, and the trials that reuse has saved."""

from typing import TypedDict, cast

from ..system.json_types import Count, Seconds
from .database import Database
from .listing import SPENT


class Week(TypedDict):
    """What a registry saw in a week. week: its Monday, in UTC, as 2026-01-26.

    builds: finished ones. tasks: those of these builds, without tasks of too small a share. known:
    how many of these tasks had a record. trials, seconds: spent on tuning. trials_saved: trials for
    tasks of models that came in this week, made earlier for other models; seconds_saved: these
    trials at the mean time of a trial on their targets.
    """

    week: str
    builds: Count
    tasks: Count
    known: Count
    trials: Count
    seconds: Seconds
    trials_saved: float
    seconds_saved: Seconds


class Trends(TypedDict):
    """`registry trends --json`. weeks: those in which something was done, the newest first."""

    weeks: list[Week]


# A model came with its first build; a model that was never built came when the last of its tasks
# was first searched. Every model after the first one that has a task saves the task's trials; the
# first one saves those made elsewhere. `stats` has the sum of all weeks.
_WEEKS = f"""
    {SPENT}
    , came AS (
        SELECT k.model, k.target, coalesce(
            (SELECT min(created) FROM builds AS b WHERE b.model = k.model AND b.target = k.target),
            max((
                SELECT min(created) FROM searches AS s
                WHERE s.workload = k.workload AND s.target = k.target
            ))
        ) AS created
        FROM model_tasks AS k GROUP BY k.model, k.target
    ), had AS (
        SELECT k.workload, k.target, c.created, row_number() OVER (
            PARTITION BY k.workload, k.target ORDER BY c.created, k.model
        ) AS place
        FROM model_tasks AS k JOIN came AS c ON c.model = k.model AND c.target = k.target
        WHERE c.created IS NOT NULL
    ), saved AS (
        SELECT h.created, s.target, s.trials - CASE h.place WHEN 1 THEN s.here ELSE 0 END AS trials
        FROM had AS h JOIN spent AS s ON s.workload = h.workload AND s.target = h.target
    ), done AS (
        SELECT created, 1 AS builds, hits + near + misses AS tasks, hits AS known,
            0 AS trials, 0.0 AS seconds, 0.0 AS trials_saved, 0.0 AS seconds_saved
        FROM builds
        UNION ALL SELECT created, 0, 0, 0, trials, seconds, 0.0, 0.0 FROM tunings
        UNION ALL SELECT created, 0, 0, 0, 0, 0.0, s.trials, s.trials * coalesce(p.seconds, 0.0)
        FROM saved AS s LEFT JOIN price AS p ON p.target = s.target
    )
    SELECT date(created, 'weekday 0', '-6 days') AS week, sum(builds) AS builds,
        sum(tasks) AS tasks, sum(known) AS known, sum(trials) AS trials, sum(seconds) AS seconds,
        sum(trials_saved) AS trials_saved, sum(seconds_saved) AS seconds_saved
    FROM done GROUP BY week ORDER BY week DESC LIMIT ?
"""


def trends(registry: Database, limit: int) -> Trends:
    """What was done with a registry, week by week. limit: at most so many weeks, the newest."""
    return cast("Trends", {"weeks": registry.rows(_WEEKS, (limit,))})
