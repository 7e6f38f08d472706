package observe

import (
	"os"
	"path/filepath"
	"testing"
)

func draw(t *testing.T, p *prometheus, panels []panel, dir string) {
	_ = os.MkdirAll(filepath.Join(dir), 0o755)
}
