"""The demonstration: a shop in Postgres, its tables in the lake, proof that they are equal."""
