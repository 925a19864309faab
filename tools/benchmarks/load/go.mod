module odradek/benchmarks/load

go 1.21
