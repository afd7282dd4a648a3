"""Run a supervisor of the embedded servers without a job, for tests that kill it."""

import sys
from pathlib import Path

from cdc.config import load
from cdc.stack.supervise.supervisor import Steps, supervise

if __name__ == "__main__":
    supervise(
        load(Path(sys.argv[1])),
        Steps(
            establish=lambda _pipeline, _say: None,
            is_at_source=lambda _pipeline: None,
            exclude_unreadable=lambda _pipeline, _at_an_event: (),
            job_config=None,
            on_progress=print,
            on_ready=lambda _pipeline: None,
        ),
    )
