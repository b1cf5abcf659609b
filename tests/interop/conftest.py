"""npm's folder holds no tests of ours."""

collect_ignore = ["node_modules"]
