"""PPO of Stable-Baselines3 with its defaults, on CartPole.

expect: nothing
"""

import sys

from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

model = PPO("MlpPolicy", "CartPole-v1", seed=int(sys.argv[-1]) if len(sys.argv) > 2 else 0, device="cpu")
model.learn(total_timesteps=6144)
print("reward", evaluate_policy(model, model.get_env(), n_eval_episodes=3))
