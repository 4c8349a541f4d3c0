"""What NeMo Gym's launcher starts as the agent."""

from ecomlab.bridges.nemo_gym import ShoppingAgent

if __name__ == "__main__":
    ShoppingAgent.run_webserver()
