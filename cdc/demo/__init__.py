"""Run the demo: a shop in Postgres, its tables in the lake, and a check that they are equal."""
