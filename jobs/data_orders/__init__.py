"""Orders to nodes about datastores: to test one, and to list the files of one."""
