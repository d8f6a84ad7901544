// Package beam converts models where one machine is not enough: as a pipeline of Apache Beam
// over the shards of a checkpoint.
//
//	p, s := sdk.NewPipelineWithRoot() // github.com/apache/beam/sdks/v2/go/pkg/beam
//	job := beam.Job{Source: "DeepSeek-V3", Out: "DeepSeek-V3-FP4", Layout: "ct-nvfp4a16"}
//	if shards, err := beam.Convert(s, job); shards > 0 && err == nil {
//		err = beamx.Run(ctx, p)
//	}
//
// Command octavo-beam does that. The files are those that octavo convert writes, to the byte,
// but for octavo-run.json, and the certificate comes last: who finds it finds a whole model.
//
// # What workers need
//
// Source and Out are paths of a file system that all workers and the program that starts the
// pipeline share, under the same names: NFS, Lustre, CephFS and the like. It must show the same
// sizes and times of files everywhere, since they are part of a plan's digest, by which workers
// make sure that they see the same source; renaming a file must replace it at once. Object
// stores are no such thing. With Beam's embedded runner, which is the default, workers are
// goroutines and any disk will do.
//
// A shard is one element, converted by one worker in less than 1 GiB of memory. A worker that
// works on several elements at once takes that much for each.
//
// # Retries
//
// Runners repeat bundles that have failed, and may run one twice, at the same time too. A shard
// is written under another name and renamed when it is whole, and what is complete is not
// written again, so neither changes anything. A pipeline that was cancelled or failed is
// started again with the same job, and goes on from the shards that are complete.
//
// Until all of them are, everything lies in a hidden directory in Out. Then the last step
// writes configuration, index and certificate and renames all files to their places. That step
// is one element: what is claimed to lose nothing, or did not, is proved there, by one worker
// that reads source and model again.
//
// # Statistics
//
// What was quantized is counted for each layer of the model. These events are merged on the
// way by a CombineFn, [Merge], whose sums are those of package telemetry: any order and
// grouping of shards gives the same bits.
package beam
