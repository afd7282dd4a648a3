"""Read and write the files of a lake, on a local disk or in an object store."""
