"""Which rows of a derived table can change when rows of its inputs do: the scope of a step."""
