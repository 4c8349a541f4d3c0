"""POLICY: `env` draws and verifies, `player` plays, `audit` answers the laws; phrases.toml words it."""
