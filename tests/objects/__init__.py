"""A lake in an object store: moto, which has the S3 API, behind a proxy that makes it fail."""
