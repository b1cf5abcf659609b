"""A model behind an address: any server that speaks OpenAI's protocol, here or elsewhere in the house."""
