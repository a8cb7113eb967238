package standin

import (
	"fmt"
	"io"
	"slices"

	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// Seed makes the generated analyses identical in every process and run.
const Seed = 11

// Corpus is a set of generated Song analyses.
type Corpus struct {
	studies []string
	// Analyses are the analyses of all studies, study by study.
	Analyses []dataset.Analysis
	// bytes is the size of their bodies.
	bytes int64
}

// Generate generates records analyses, evenly over the studies.
func Generate(studies, records int) *Corpus {
	c := &Corpus{studies: dataset.GenerateStudies(studies), Analyses: make([]dataset.Analysis, 0, records)}
	for i, study := range c.studies {
		n := (records - len(c.Analyses)) / (studies - i)
		c.Analyses = append(c.Analyses, dataset.GenerateAnalyses(Seed, study, n)...)
	}
	for i := range c.Analyses {
		c.bytes += int64(len(c.Analyses[i].Body))
	}
	return c
}

// MeanBytes is the mean size of an analysis in bytes.
func (c *Corpus) MeanBytes() float64 { return float64(c.bytes) / float64(len(c.Analyses)) }

// Serve starts a Song server with the analyses. The caller must close it.
func (c *Corpus) Serve() (*testkit.SongServer, error) {
	s, err := testkit.NewSong(testkit.SongConfig{})
	if err != nil {
		return nil, err
	}
	for _, study := range c.studies {
		s.AddStudy(study)
	}
	for part := range slices.Chunk(c.Analyses, 10_000) {
		s.PutAll(part...)
	}
	return s, nil
}

// UpstreamConfig configures ServeUpstream.
type UpstreamConfig struct {
	Studies, Records int
}

// ServeUpstream runs a Song server with generated analyses: it prints its address to out, and stops when in ends.
func ServeUpstream(cfg UpstreamConfig, in io.Reader, out io.Writer) error {
	s, err := Generate(cfg.Studies, cfg.Records).Serve()
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := fmt.Fprintln(out, AddressPrefix+s.URL()); err != nil {
		return fmt.Errorf("printing the address: %w", err)
	}
	return untilClosed(in)
}

// AddressPrefix precedes the address that a child process prints.
const AddressPrefix = "address "

// untilClosed blocks until in ends, like a child's standard input when its parent exits.
func untilClosed(in io.Reader) error {
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("waiting for the parent: %w", err)
	}
	return nil
}
