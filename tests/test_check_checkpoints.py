"""The checkpoints that lab 04 computes are those that TPUEstimator's own hook writes."""

import pytest

from lab_utils.check.labs.lab_04 import checkpoints
from lab_utils.estimator import v1


@pytest.mark.parametrize(
    "loop, every, steps", [(90, 200, 1000), (25, 200, 400), (300, 1000, 2500), (7, 3, 20)]
)
def test_checkpoints_are_those_of_the_hook(loop, every, steps, tmp_path):
    saved = []

    class Saved(v1.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            saved.append(int(global_step_value))

    with v1.Graph().as_default():
        step = v1.train.create_global_step()
        hook = v1.train.CheckpointSaverHook(str(tmp_path), save_steps=every, listeners=[Saved()])
        hook._set_steps_per_run(loop)  # as TPUEstimator does
        following = v1.assign(step, v1.minimum(step + loop, steps))
        with v1.train.SingularMonitoredSession(hooks=[hook]) as session:
            while session.run(following) < steps:
                pass
    assert saved == checkpoints(loop, every, steps)
