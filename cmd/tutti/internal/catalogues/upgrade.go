package catalogues

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/app/compare"
	"tutti/internal/base/printable"
	"tutti/internal/config"
)

// UpgradeCommand returns tutti upgrade.
func UpgradeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "upgrade",
		Short:   "Show what changes with this release",
		Long:    "Run it with the new release, before the one that runs is replaced.",
		Example: "  tutti upgrade plan --config tutti.yaml",
	}
	cmd.AddCommand(upgradePlanCommand())
	return cmd
}

func upgradePlanCommand() *cobra.Command {
	var r command.Remote
	var file string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what the first start of this release changes, and what a rebuild of each index changes later",
		Long: "Show what the first start changes in store, queue and index, and whether the release before can be started on them\n" +
			"again; what changes in catalogues, such as default display names; and, of each repository's index, the types,\n" +
			"limits and settings that stay until a rebuild changes them. A catalogue with the name of a route of this release\n" +
			"keeps it, and is named. Nothing is changed.\n\n" +
			"The server of --server, which may be of the release before, is asked for its catalogues, and for the embedded\n" +
			"index while it runs; an embedded index that no tutti has open is read from the data folder. What could not be\n" +
			"compared is said.\n\n" +
			"Exit code: 0 when nothing changes; 2 when something does, or could not be compared; 1 on every error.",
		Example: "  tutti upgrade plan --config tutti.yaml\n" +
			"  tutti upgrade plan --config tutti.yaml --output json | jq '.changes[] | select(.when == \"by a rebuild\")'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.Client(cmd)
			if err != nil {
				return err
			}
			cfg, err := config.Load(file, os.Environ())
			if err != nil {
				return err
			}
			var served compare.Served = servedCatalogues{c}
			_, unasked := c.Catalogues(cmd.Context())
			if unasked != nil {
				served = nil
			}
			p := compare.Upgrade(cmd.Context(), cfg, cmd.Root().Version, served, unasked)
			text, err := json.Marshal(p)
			if err := r.Print(cmd, text, err, func() error { return printUpgradePlan(cmd.OutOrStdout(), p) }); err != nil || !p.Difference {
				return err
			}
			return &command.ExitError{Code: command.ExitPartial}
		},
	}
	r.AddFlags(cmd)
	command.ConfigFlag(cmd, &file)
	return cmd
}

func printUpgradePlan(out io.Writer, p compare.UpgradePlan) error {
	parts := display.NewTable("PART", "THE FIRST START CHANGES", "THE RELEASE BEFORE")
	for _, s := range p.Storage {
		change, before := cmp.Or(s.Change, "nothing"), s.Before
		if s.Unread != "" {
			change, before = "not known", "not known"
		}
		parts.Row(s.Part, change, before)
	}
	if err := parts.Write(out); err != nil {
		return err
	}
	if len(p.Changes) > 0 {
		changes := display.NewTable("WHAT", "CHANGE", "WHEN")
		for _, c := range p.Changes {
			changes.Row(c.Subject, c.Change, c.When)
		}
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
		if err := changes.Write(out); err != nil {
			return err
		}
	}
	text := ""
	if len(p.Unread) > 0 {
		text = "\nNot compared:\n  " + printable.Lines(strings.Join(p.Unread, "\n  ")) + "\n"
	}
	if !p.Difference {
		text += "\nNothing changes.\n"
	}
	_, err := io.WriteString(out, text)
	return err
}
