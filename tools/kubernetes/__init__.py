"""Tools with which the Helm chart is made and checked."""
