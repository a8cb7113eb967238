package results

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes the machine of the figures.
type Machine struct {
	Version    string `json:"version"`
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPUs       int    `json:"cpus"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	// Load is the system's load over the last minute before the first benchmark, empty when unknown.
	Load string `json:"load,omitempty"`
}

// ThisMachine describes the machine that runs this program of the given version.
func ThisMachine(version string) Machine {
	m := Machine{
		Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
		GOMAXPROCS: runtime.GOMAXPROCS(0),
	}
	if line, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(line), " ")
	}
	return m
}

// String returns the machine in one line.
func (m Machine) String() string {
	out := fmt.Sprintf("tutti %s, %s %s/%s, %d CPUs, GOMAXPROCS %d", m.Version, m.Go, m.OS, m.Arch, m.CPUs, m.GOMAXPROCS)
	if m.Load != "" {
		out += ", load before the start " + m.Load
	}
	return out
}
