"""Keep the state directory: files through which commands and the running job communicate."""
