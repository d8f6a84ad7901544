module github.com/octavo-fp8/octavo/cmd

go 1.26.0
