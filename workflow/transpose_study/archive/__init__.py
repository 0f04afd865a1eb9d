"""Archives of finished runs: what is packed, how it is checked, how raw data come out again."""
