"""What the Helm chart is made and checked with."""
