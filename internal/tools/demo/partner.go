package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tutti/internal/app"
	"tutti/internal/base/retry"
	"tutti/internal/config"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// The other node of the demo's federation.
const (
	partnerAnalyses = 300
	partnerFolder   = "partner"
	partnerIndex    = "partner-analyses"
	partnerCode     = "partner.song"
	partnerStudy    = "KIDN-FR"
	// partnerWait bounds the time to fill its index.
	partnerWait = 30 * time.Second
)

// partnerConfiguration is the configuration of the other node: data directory and the repository's URL.
const partnerConfiguration = `
server: {listen: "127.0.0.1:0"}
dataDir: %q
repositories:
  - {code: ` + partnerCode + `, type: song, url: %q, indexName: ` + partnerIndex + `}
`

// networkFile makes a catalogue a node of a federation, with the other node's URL.
const networkFile = `{
  "network": {
    "localNode": {"nodeId": "demo", "displayName": "This node"},
    "remoteNodes": [
      {"nodeId": "partner", "displayName": "Partner", "documentType": "analysis", "graphqlUrl": %q, "requests": {"headers": ["Authorization"]}}
    ]
  }
}
`

// partner is another tutti, with its own metadata repository.
type partner struct {
	song *testkit.SongServer
	app  *app.App
}

// startPartner starts the other node below a data directory and fills its index.
func startPartner(ctx context.Context, cfg Config, dataDir string) (_ *partner, err error) {
	p := &partner{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop(ctx))
		}
	}()
	if p.song, err = testkit.NewSong(testkit.SongConfig{}); err != nil {
		return nil, err
	}
	p.song.AddStudy(partnerStudy)
	p.song.PutAll(dataset.GenerateAnalyses(seed, partnerStudy, partnerAnalyses)...)
	c, err := config.Parse(fmt.Appendf(nil, partnerConfiguration, filepath.Join(dataDir, partnerFolder), p.song.URL()), nil)
	if err != nil {
		return nil, err
	}
	if p.app, err = app.New(c, app.Options{Logger: cfg.Logger, Version: cfg.Version}); err != nil {
		return nil, err
	}
	if err := p.app.Start(ctx); err != nil {
		p.app = nil // it has stopped itself
		return nil, err
	}
	return p, p.fill(ctx)
}

// fill indexes the other node's repository.
func (p *partner) fill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, partnerWait)
	defer cancel()
	client := newClient(p.app.URL())
	accepted, err := client.post(ctx, "/index/repository/"+partnerCode)
	if err != nil {
		return err
	}
	for {
		job, err := client.get(ctx, "/jobs/"+accepted.Get("jobId").String())
		if err != nil {
			return err
		}
		if job.Get("endedAt").String() != "" {
			return nil
		}
		if err := retry.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// graphqlURL returns the GraphQL URL of the other node.
func (p *partner) graphqlURL() string { return p.app.URL() + "/" + partnerIndex + "/graphql" }

func (p *partner) stop(ctx context.Context) error {
	var err error
	if p.app != nil {
		err = p.app.Stop(context.WithoutCancel(ctx))
	}
	if p.song != nil {
		p.song.Close()
	}
	return err
}

// join makes the catalogue of analyses a node beside the partner.
func (p *partner) join(catalogues string) error {
	file := filepath.Join(catalogues, catalogueAnalyses, "network.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, networkFile, p.graphqlURL()), 0o600); err != nil {
		return fmt.Errorf("writing the federation: %w", err)
	}
	return nil
}

// networkQuery queries all nodes of the federation.
const networkQuery = `{network{nodes{name hits status errors} aggregations{studyId{buckets{key doc_count}}}}}`

// federated queries both nodes as one, once the fields of the other are known.
func (d *demo) federated(ctx context.Context) error {
	path := "/" + catalogueAnalyses + "/graphql"
	d.say("\n9. The same query to a federation of two nodes: network, with POST %s", path)
	waiting := time.Now()
	for {
		answer, took, err := d.graphql(ctx, path, networkQuery)
		if err != nil {
			return err
		}
		nodes := answer.Get("network.nodes").Array()
		ready := len(nodes) > 0
		var told []string
		for _, node := range nodes {
			ready = ready && node.Get("status").String() == "OK"
			told = append(told, fmt.Sprintf("%s %s (%s)", node.Get("name"), node.Get("hits"), node.Get("status")))
		}
		if !ready && time.Since(waiting) < partnerWait {
			if err := retry.Sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		var studies []string
		for _, bucket := range answer.Get("network.aggregations.studyId.buckets").Array() {
			studies = append(studies, fmt.Sprintf("%s %s", bucket.Get("key"), bucket.Get("doc_count")))
		}
		d.say("   nodes    %s (%s)", strings.Join(told, ", "), took.Round(10*time.Microsecond))
		d.say("   studyId  %s", strings.Join(studies, ", "))
		return nil
	}
}
