"""nethook as a callback of Stable-Baselines3.

from nethook.sb3 import NethookCallback

model.learn(total_timesteps=10_000, callback=NethookCallback("runs/cartpole.db"))
"""

from __future__ import annotations

from typing import Any

try:
    from stable_baselines3.common.callbacks import BaseCallback
except ImportError:
    from nethook.errors import MissingLibraryError

    raise MissingLibraryError(
        "nethook.sb3 needs Stable-Baselines3, which is not installed: pip install stable-baselines3"
    ) from None

from nethook.integrations.trainer_run import RecordsRun, read_state


class NethookCallback(RecordsRun, BaseCallback):  # type: ignore[misc]  # not installed: Any
    """Records every `learn` of an agent in a run: its policy, with what the agent logs.

    What the agent logs (`train/loss`, `rollout/ep_rew_mean`, …) is kept as `trainer/NAME` between
    rollouts, with `trainer/timesteps`. A saved agent has an attribute `nethook` that names the run
    and the step: one that was loaded and learns with `reset_num_timesteps=False` goes on in its
    run. Under `nethook run` the numbers go to the run that is open.

    Arguments: those of `nethook.integrations.trainer_run.RecordsRun`.
    """

    def _on_training_start(self) -> None:
        """Begins the run, or goes on in that of the agent."""
        kept = read_state(getattr(self.model, "nethook", None)) if self.num_timesteps else {}
        self.trainer_run.begin(self.model.policy, resume=kept.get("run"), step=kept.get("step"))

    def _on_rollout_start(self) -> None:
        """The agent has been trained since the last rollout, or is about to begin."""
        self._keep()

    def _on_step(self) -> bool:
        """A step of the environment; False ends the training."""
        return not self.trainer_run.react()

    def _on_training_end(self) -> None:
        """The run ends with the training."""
        self._keep()
        self.trainer_run.end()

    def _keep(self) -> None:
        numbers: dict[str, Any] = {**self.logger.name_to_value, "timesteps": self.num_timesteps}
        self.trainer_run.log(numbers)
        # Attributes of an agent are saved with it, whenever somebody does.
        self.model.nethook = self.kept_state()
