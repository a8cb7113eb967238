package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app"
	"tutti/internal/base/printable"
	"tutti/internal/config"
	"tutti/internal/core"
)

// AlertsCommand returns tutti alerts.
func AlertsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alerts",
		Short: "Test the receivers of alerts",
		Long:  "Test the receivers that the key alerts of the configuration names. A server that runs is not affected.",
	}
	cmd.AddCommand(alertsTestCommand())
	return cmd
}

func alertsTestCommand() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Send a test message to each receiver",
		Long: "Send a test message to each receiver of alerts that the configuration names, whatever events it selects, and print\n" +
			"what it answered. The exit code is 0 when all took the message, else 1.",
		Example: "  tutti alerts test --config tutti.yaml\n  tutti alerts test --config tutti.yaml --output json | jq '.results[].status'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.CheckOutput(output); err != nil {
				return err
			}
			cfg, err := config.Load(file, os.Environ())
			if err != nil {
				return err
			}
			if len(cfg.Alerts) == 0 {
				return &core.Error{Code: core.CodeInvalid, Message: "the configuration names no receiver of alerts", Hint: "set the key alerts"}
			}
			results := app.TestAlerts(cmd.Context(), cfg, cmd.Root().Version)
			return writeAlertTests(cmd.OutOrStdout(), alertTests(results), output)
		},
	}
	cmd.Flags().StringVar(&file, "config", os.Getenv("TUTTI_CONFIG"), "the configuration `file` (YAML); also TUTTI_CONFIG")
	cmd.Flags().StringVarP(&output, "output", "o", command.OutputText, "`text` or json")
	command.Complete(cmd, "output", command.Outputs()...)
	return cmd
}

// alertTest is the result of one test message.
type alertTest struct {
	Receiver string `json:"receiver"`
	OK       bool   `json:"ok"`
	Status   int    `json:"status,omitempty"`
	Response string `json:"response,omitempty"`
	Error    string `json:"error,omitempty"`
}

func alertTests(results []app.AlertTest) []alertTest {
	tests := make([]alertTest, len(results))
	for i, r := range results {
		tests[i] = alertTest{
			Receiver: fmt.Sprintf("alerts[%d] %s", i, r.Host), OK: r.Err == nil, Status: r.Status, Response: r.Body,
		}
		if r.Err != nil {
			tests[i].Error = r.Err.Error()
		}
	}
	return tests
}

// writeAlertTests writes the results; the error says how many receivers did not take the message.
func writeAlertTests(w io.Writer, tests []alertTest, output string) error {
	failed := 0
	for _, t := range tests {
		if !t.OK {
			failed++
		}
	}
	if output == command.OutputText {
		for _, t := range tests {
			line := fmt.Sprintf("ok      %s: status %d %s", t.Receiver, t.Status, t.Response)
			if !t.OK {
				line = fmt.Sprintf("failed  %s: %s", t.Receiver, t.Error)
			}
			if _, err := fmt.Fprintln(w, printable.Line(line)); err != nil {
				return err
			}
		}
	} else {
		text, err := json.Marshal(map[string]any{"results": tests})
		if err != nil {
			return fmt.Errorf("writing the results: %w", err)
		}
		if err := command.PrintJSON(w, text); err != nil {
			return err
		}
	}
	if failed > 0 {
		return core.NewError(core.CodeUnavailable, fmt.Sprintf("%d of %d receivers did not take the message", failed, len(tests)))
	}
	return nil
}
