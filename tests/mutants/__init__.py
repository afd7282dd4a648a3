"""What the tests are worth: which of them go red when a rule of the code is taken out."""
