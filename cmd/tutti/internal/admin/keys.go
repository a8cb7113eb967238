// Package admin has the commands on keys, alerts, backups and migrations.
package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tutti/cmd/tutti/internal/client"
	"tutti/cmd/tutti/internal/client/display"
	"tutti/cmd/tutti/internal/command"
	"tutti/internal/base/printable"
)

// keyFlags are the flags that select where keys are managed: at a server, or in the store of a configuration.
type keyFlags struct {
	command.Remote
	file string
}

// KeysCommand returns tutti keys.
func KeysCommand() *cobra.Command {
	var k keyFlags
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Create, list and revoke API keys",
		Long: "API keys are tokens for a server with auth.mode token. Manage them at a server with a token that has the system's\n" +
			"scope, or with --config directly in the store of that configuration. Create the first key with --config while the\n" +
			"server is stopped; with PostgreSQL it may be running. If the configuration is in the environment only, without a\n" +
			"file, give --config \"\".",
		Example: "  tutti keys create --config tutti.yaml --name admin --scope tutti.WRITE\n" +
			"  tutti keys create --config \"\" --name admin --scope tutti.WRITE\n" +
			"  tutti keys create --name portal --scope STUDY-1.READ --scope STUDY-2.READ --expires 90d\n" +
			"  tutti keys list\n" +
			"  tutti keys revoke ID",
	}
	k.AddFlags(cmd)
	// TUTTI_CONFIG is not the default: with it set, every call would use the store instead of the server.
	cmd.PersistentFlags().StringVar(&k.file, "config", "", "manage the keys in the store of this configuration `file` (YAML) instead of at a server; \"\" means the configuration in the environment")
	cmd.AddCommand(keysCreateCommand(&k), keysListCommand(&k), keysRevokeCommand(&k))
	return cmd
}

func keysCreateCommand(k *keyFlags) *cobra.Command {
	var name, expires string
	var scopes []string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create an API key",
		Long: "Create an API key and write it to stdout, as a line of its own. It is shown only once and cannot be read again;\n" +
			"details are written to stderr.\n\n" +
			"Scopes, with the default auth.systemScope, auth.readSuffix and auth.writeSuffix:\n\n" +
			"  tutti.WRITE           everything\n" +
			"  <organization>.WRITE  index, submit and publish in that organization\n" +
			"  <organization>.READ   read unpublished analyses of that organization",
		Example: "  TUTTI_TOKEN=$(tutti keys create --config tutti.yaml --name admin --scope tutti.WRITE)\n" +
			"  tutti keys create --name uploads --scope STUDY-1.WRITE --expires 90d\n" +
			"  tutti keys create --name visitor --scope STUDY-1.READ --expires 2027-01-31",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case name == "":
				return command.Usage(cmd, "give a --name that says what the key is for")
			case len(scopes) == 0:
				return command.Usage(cmd, "give a --scope, such as --scope tutti.WRITE")
			}
			end, err := parseExpiry(expires, time.Now())
			if err != nil {
				return command.Usage(cmd, err.Error())
			}
			return k.manage(cmd, func(ctx context.Context, m keyManager) error {
				key, err := m.CreateKey(ctx, name, scopes, end)
				if err != nil {
					return err
				}
				return printNewKey(cmd, k, key)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "what the key is for, a `text` shown in lists and logs")
	flags.StringArrayVar(&scopes, "scope", nil, "a `scope` that the key grants; may be given several times")
	flags.StringVar(&expires, "expires", "", "when the key expires, a `time`: after 90d or 12h, at the start of 2027-01-31 (UTC), or at 2027-01-31T12:00:00Z; never by default")
	command.Complete(cmd, "name")
	command.Complete(cmd, "scope")
	command.Complete(cmd, "expires", "30d", "90d", "365d")
	return cmd
}

func printNewKey(cmd *cobra.Command, k *keyFlags, key client.APIKey) error {
	if k.JSON() {
		return printKeyJSON(cmd, key.Raw, key)
	}
	// Only the key is written to stdout, so that a shell can assign it to a variable.
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), printable.Line(key.Key)); err != nil {
		return err
	}
	ends := "does not expire"
	if !key.ExpiresAt.IsZero() {
		ends = "expires " + display.Time(key.ExpiresAt)
	}
	_, err := fmt.Fprintln(cmd.ErrOrStderr(), printable.Line(fmt.Sprintf(
		"key %s, %s, allows %s and %s; save it now, it is not shown again", key.ID, key.Name, strings.Join(key.Scopes, " "), ends)))
	return err
}

// printKeyJSON writes raw, the server's response, or v as JSON if raw is nil.
func printKeyJSON(cmd *cobra.Command, raw json.RawMessage, v any) error {
	if raw == nil {
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return fmt.Errorf("writing the key: %w", err)
		}
	}
	return command.PrintJSON(cmd.OutOrStdout(), raw)
}

func keysListCommand(k *keyFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List API keys, the newest first",
		Long:    "List API keys, the newest first, including expired and revoked ones. The keys themselves are not stored.\n\n" + command.LocalTimes,
		Example: "  tutti keys list\n  tutti keys list --config tutti.yaml --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return k.manage(cmd, func(ctx context.Context, m keyManager) error {
				list, err := m.Keys(ctx)
				if err != nil {
					return err
				}
				if k.JSON() {
					return printKeyJSON(cmd, list.Raw, list)
				}
				return printKeys(cmd, list.Keys, time.Now())
			})
		},
	}
}

func printKeys(cmd *cobra.Command, keys []client.APIKey, now time.Time) error {
	out := cmd.OutOrStdout()
	if len(keys) == 0 {
		_, err := fmt.Fprintln(out, "no keys")
		return err
	}
	table := display.NewTable("ID", "NAME", "STATE", "CREATED", "EXPIRES", "SCOPES")
	for _, key := range keys {
		state := "valid"
		switch {
		case !key.RevokedAt.IsZero():
			state = "revoked"
		case !key.ExpiresAt.IsZero() && !key.ExpiresAt.After(now):
			state = "expired"
		}
		table.Row(key.ID, key.Name, state, display.Time(key.CreatedAt), display.Time(key.ExpiresAt), strings.Join(key.Scopes, " "))
	}
	return table.Write(out)
}

func keysRevokeCommand(k *keyFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke <id>",
		Short: "Revoke an API key",
		Long: "Revoke an API key permanently. The server rejects it at once, other processes on the same store within moments.\n" +
			"Revoking a key twice is not an error. The id is the one in the list, not the key itself.",
		Example: "  tutti keys revoke ID",
		Args:    command.Arguments(1, "pass the id of one key"),
		ValidArgsFunction: func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if cmd.Flags().Changed("config") {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return command.CompleteIDs(&k.Remote, 1, keyIDs)(cmd, given, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return k.manage(cmd, func(ctx context.Context, m keyManager) error {
				key, err := m.RevokeKey(ctx, args[0])
				if err != nil {
					return err
				}
				if k.JSON() {
					return printKeyJSON(cmd, key.Raw, key)
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), printable.Line("revoked "+key.ID+", "+key.Name))
				return err
			})
		},
	}
}

// keyIDs returns completions for the keys that are not revoked.
func keyIDs(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	list, err := c.Keys(ctx)
	if err != nil {
		return nil, err
	}
	var found []cobra.Completion
	for _, key := range list.Keys {
		if key.RevokedAt.IsZero() {
			found = append(found, cobra.CompletionWithDesc(key.ID, printable.Line(key.Name)))
		}
	}
	return found, nil
}

const (
	// maxDays is the largest expiry in days: a hundred years, which no time.Time overflows.
	maxDays = 36_525
	// maxYear is the last year that time.Time encodes as JSON.
	maxYear = 9999
)

// parseExpiry parses the time at which a key expires: a number of days such as 90d, a Go duration such as 12h, a date (its start
// in UTC) or an RFC 3339 time. For "" it returns the zero time, which means never. Its error names the flag.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	invalid := func(problem string) (time.Time, error) {
		return time.Time{}, fmt.Errorf("--expires %s", problem)
	}
	end, ok := parseExpiryTime(text, now)
	switch {
	case !ok:
		return invalid(fmt.Sprintf("takes a time such as 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z, not %q", text))
	case !end.Truncate(time.Second).After(now):
		return invalid(fmt.Sprintf("is %s, which is in the past", text))
	case end.UTC().Year() > maxYear:
		return invalid(fmt.Sprintf("is %s, which in UTC is after the year %d", text, maxYear))
	default:
		return end.UTC().Truncate(time.Second), nil
	}
}

func parseExpiryTime(text string, now time.Time) (end time.Time, ok bool) {
	if days, cut := strings.CutSuffix(text, "d"); cut {
		n, err := strconv.Atoi(days)
		return now.AddDate(0, 0, n), err == nil && n >= 0 && n <= maxDays
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), d >= 0
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if end, err := time.Parse(layout, text); err == nil {
			return end, true
		}
	}
	return time.Time{}, false
}
