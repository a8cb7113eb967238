package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"tutti/internal/app"
	"tutti/internal/config"
)

func serveCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: "Run the server until it is interrupted. Every key of the file can also be set as an environment variable, such as\n" +
			"TUTTI_SERVER_LISTEN or TUTTI_REPOSITORIES_0_CODE. The environment takes precedence.",
		Example: "  tutti serve --config tutti.yaml\n" +
			"  TUTTI_LOG_FORMAT=json tutti serve --config tutti.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(file, os.Environ())
			if err != nil {
				return err
			}
			log := logger(cmd.ErrOrStderr(), cfg.Log)
			a, err := app.New(cfg, app.Options{Logger: log, Version: buildVersion()})
			if err != nil {
				return err
			}
			if err := a.Start(cmd.Context()); err != nil {
				return err
			}
			var failed error
			select {
			case <-cmd.Context().Done():
				log.Info("stopping")
			case failed = <-a.Failed():
			}
			if err := errors.Join(failed, a.Stop(context.WithoutCancel(cmd.Context()))); err != nil {
				return err
			}
			log.Info("stopped")
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "config", os.Getenv("TUTTI_CONFIG"), "the configuration `file` (YAML); also TUTTI_CONFIG")
	return cmd
}

// logger returns the process's logger. cfg must be valid. JSON has durations as milliseconds, and says so in their keys.
func logger(w io.Writer, cfg config.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.SlogLevel()}
	if cfg.Format == "json" {
		options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() != slog.KindDuration {
				return a
			}
			return slog.Float64(a.Key+"_ms", float64(a.Value.Duration().Microseconds())/1000)
		}
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// buildVersion returns the version of the release, else the one that the Go tool recorded.
func buildVersion() string {
	if version != "dev" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return version
}
