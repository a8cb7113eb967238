package main

import (
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"

	"tutti/internal/config"
)

// TestPrometheusConfiguration: the configuration for Prometheus scrapes tutti where it listens by default.
func TestPrometheusConfiguration(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Global struct {
			ScrapeInterval string `yaml:"scrape_interval"`
		} `yaml:"global"`
		ScrapeConfigs []struct {
			JobName       string `yaml:"job_name"`
			MetricsPath   string `yaml:"metrics_path"`
			StaticConfigs []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.ScrapeConfigs) != 1 || len(file.ScrapeConfigs[0].StaticConfigs) != 1 {
		t.Fatalf("scrape configurations: %+v", file.ScrapeConfigs)
	}
	scrape := file.ScrapeConfigs[0]
	targets := scrape.StaticConfigs[0].Targets
	if scrape.JobName != "tutti" || scrape.MetricsPath != "/metrics" || len(targets) != 1 || targets[0] != config.Default().Server.Listen {
		t.Errorf("scrapes %+v, tutti listens on %s", scrape, config.Default().Server.Listen)
	}
}
