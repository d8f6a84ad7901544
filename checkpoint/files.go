package checkpoint

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/internal/checksum"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/meter"
)

// notCopied are the ends of names of files that are weights in other forms.
var notCopied = []string{
	suffix, ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".h5", ".msgpack", ".onnx", ".index.json",
}

// CopiedFiles returns the names of the source's files that Convert copies: those beside weights
// and configuration but for hidden ones, weights in other forms, and what octavo wrote about an
// earlier conversion. Where a single file was opened, in a directory without config.json, there
// are none: what else lies there need not be of the model.
func (p *Plan) CopiedFiles() (names []string) {
	if p.source.single && p.source.Config.Model == nil {
		return nil
	}
	for _, name := range p.source.others {
		ours := name == ConfigName || name == ModelOptName || name == CertificateName ||
			name == "octavo-run.json" || name == CertificatePage || strings.HasSuffix(name, doneSuffix)
		weights := slices.ContainsFunc(notCopied, func(end string) bool {
			return strings.HasSuffix(name, end)
		})
		if !ours && !weights && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

// Files returns the names of all files that Convert writes, the certificate last and before it
// the configuration.
func (p *Plan) Files() (names []string) {
	for _, s := range p.Shards {
		names = append(names, s.Name)
	}
	names = append(names, p.CopiedFiles()...)
	names = append(names, slices.Sorted(maps.Keys(p.documents))...)
	return append(names, CertificateName)
}

// write writes a file that is in memory.
func (c *converting) write(name string, data []byte) (FileSum, error) {
	err := atomicfile.Write(filepath.Join(c.dir, name), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	sum := checksum.Of(data)
	return FileSum{Name: name, Bytes: int64(len(data)), CRC32: hexSum(sum)}, err
}

func hexSum(sum uint32) string { return fmt.Sprintf("%08x", sum) }

// sum reads a file that was written.
func (c *converting) sum(name string, m *meter.Meter) (FileSum, error) {
	file, err := os.Open(filepath.Join(c.dir, name))
	if err != nil {
		return FileSum{}, err
	}
	defer file.Close()
	return c.sumAll(name, file, io.Discard, m)
}

// sumAll copies what r has to w and sums it up.
func (c *converting) sumAll(name string, r io.Reader, w io.Writer, m *meter.Meter) (FileSum, error) {
	buffer := make([]byte, 1<<20)
	size, sum := int64(0), uint32(0)
	for {
		n, err := r.Read(buffer)
		sum = checksum.Update(sum, buffer[:n])
		size += int64(n)
		if _, e := w.Write(buffer[:n]); e != nil {
			return FileSum{}, e
		}
		if e := m.Add(int64(n)); e != nil {
			return FileSum{}, e
		}
		if err == io.EOF {
			return FileSum{Name: name, Bytes: size, CRC32: hexSum(sum)}, nil
		}
		if err != nil {
			return FileSum{}, err
		}
	}
}

// copyFiles copies the files beside the weights.
func (c *converting) copyFiles(ctx context.Context) (sums []FileSum, err error) {
	m := meter.New(ctx, nil, "", 0)
	for _, name := range c.p.CopiedFiles() {
		file, _, err := inputfile.Open(c.p.path(name))
		if err != nil {
			return nil, err
		}
		var sum FileSum
		err = atomicfile.Write(filepath.Join(c.dir, name), func(w io.Writer) (err error) {
			sum, err = c.sumAll(name, file, w, m)
			return err
		})
		file.Close()
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum)
	}
	return sums, nil
}

// writeDocuments writes the configuration and the index.
func (c *converting) writeDocuments() (sums []FileSum, err error) {
	for _, name := range slices.Sorted(maps.Keys(c.p.documents)) {
		sum, err := c.write(name, c.p.documents[name])
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum)
	}
	return sums, nil
}
