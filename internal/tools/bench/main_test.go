package bench_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/internal/app"
	"tutti/internal/config"
	"tutti/internal/tools/bench/standin"
	"tutti/internal/tools/bench/testbed"
)

// childArgument is the first argument when a bench starts this test binary as another process.
const childArgument = "as-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == childArgument {
		if err := child(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child runs the program's sub-commands.
func child(args []string) error {
	switch args[0] {
	case "serve":
		return serve()
	case testbed.UpstreamCommand:
		var cfg standin.UpstreamConfig
		if _, err := fmt.Sscan(args[2]+" "+args[4], &cfg.Studies, &cfg.Records); err != nil {
			return err
		}
		return standin.ServeUpstream(cfg, os.Stdin, os.Stdout)
	default:
		delay, err := time.ParseDuration(args[2])
		if err != nil {
			return err
		}
		return standin.ServeSink(delay, os.Stdin, os.Stdout)
	}
}

func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cfg, err := config.Load("", os.Environ())
	if err != nil {
		return err
	}
	a, err := app.New(cfg, app.Options{Logger: slog.New(slog.NewJSONHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	if err := a.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return a.Stop(context.WithoutCancel(ctx))
}
