"""A2C of Stable-Baselines3 with its defaults, on CartPole.

needs: stable_baselines3
expect: nothing
"""

from stable_baselines3 import A2C

model = A2C("MlpPolicy", "CartPole-v1", seed=0, device="cpu")
model.learn(total_timesteps=4000)
