package lint_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/checkpoint/lint"
)

// FuzzCheck checks that whatever the configurations, the index and a shard are there are
// findings or an error, in one line.
func FuzzCheck(f *testing.F) {
	const (
		name  = "model-00001-of-00001.safetensors"
		index = `{"metadata":{"total_size":1},"weight_map":{"a.weight":"` + name + `"}}`
		shard = `{"__metadata__":{"format":"pt"},"a.weight":{"dtype":"F8_E4M3","shape":[2,4],"data_offsets":[0,8]},` +
			`"a.weight_scale_inv":{"dtype":"F32","shape":[1,1],"data_offsets":[8,12]},` +
			`"b.weight":{"dtype":"BF16","shape":[1,4],"data_offsets":[12,20]},"b.k_scale":{"dtype":"F32","shape":[],"data_offsets":[20,24]},` +
			`"c.weight_packed":{"dtype":"U8","shape":[1,16],"data_offsets":[24,40]},"c.weight_scale":{"dtype":"U8","shape":[1,1],"data_offsets":[40,41]}}`
		data = "\x7e\x7e\x7f\x01\x02\x03\x04\x05\x00\x00\x80\x3f" + "aaaaaaaaa\x00\x80\x3f\x00\x00\x80\x3f0123456789abcdefg"
	)
	for _, config := range []string{
		`{"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128],"scale_fmt":"ue8m0","modules_to_not_convert":["b","re:(","*[","lm_head"]}}`,
		`{"tie_word_embeddings":true,"quantization_config":{"quant_method":"compressed-tensors","format":"mixed-precision","version":"0.9","quantization_status":"frozen",` +
			`"kv_cache_scheme":{},"config_groups":{"group_0":{"format":"mxfp4-pack-quantized","targets":["Linear","re:.*b$"],"weights":{"group_size":32},"input_activations":{"dynamic":false}}}}}`,
		`{"architectures":["XForCausalLM"],"tie_word_embeddings":false,"text_config":{"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4","ignore":[1,null,"b"]}}}`,
		`{"quantization_config":[]}`, `{"quantization_config":{"quant_method":"fp8","weight_block_size":[1e30,-1]}}`, `{"a":1,"a":2}`, "null", "",
		strings.Repeat("[", 20000), `{"quantization_config":{"config_groups":{"a":{"weights":{"block_structure":[0,0]}}}}}`,
	} {
		for _, index := range []string{index, "{}", `{"weight_map":{"a":"../x.safetensors"}}`, ""} {
			f.Add(config, `{"quantization":{"quant_algo":"NVFP4","exclude_modules":["b"],"kv_cache_quant_algo":"FP8"}}`, index, header(shard)+data)
		}
		f.Add(config, "", "", header(shard)+data[1:])
	}
	f.Add("{}", "{}", "", "\xff\xff\xff\xff\xff\xff\xff\xff{}")
	f.Add("{", "", `{"weight_map":{"a":"x.safetensors","b":"y.safetensors"}}`, "")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, config, modelOpt, index, file string) {
		for path, text := range map[string]string{
			checkpoint.ConfigName: config, checkpoint.ModelOptName: modelOpt, checkpoint.IndexName: index, name: file,
		} {
			path = filepath.Join(dir, path)
			if text == "" {
				require.NoError(t, os.RemoveAll(path))
				continue
			}
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		r, err := lint.Check(t.Context(), dir, lint.Options{TensorParallel: 2})
		if err != nil {
			require.NotContains(t, strings.ReplaceAll(err.Error(), dir, ""), "\n")
			return
		}
		for _, found := range r.Findings {
			require.NotEmpty(t, found.What)
			require.NotEmpty(t, found.Severity)
		}
		_, err = json.Marshal(r)
		require.NoError(t, err)
	})
}
