"""PPO of Stable-Baselines3 with its defaults, on CartPole.

needs: stable_baselines3
expect: nothing
"""

from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

model = PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu")
model.learn(total_timesteps=6144)
print("logged: train", model.logger.name_to_value["train/loss"])
print("reward", evaluate_policy(model, model.get_env(), n_eval_episodes=3))
