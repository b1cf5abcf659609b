"""The deterministic simulator: whole swarms in virtual time, under every fault, replayed from one number."""
