package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tutti/internal/client"
	"tutti/internal/client/display"
)

// keyFlags say where keys are managed: at a server, or in the store that a configuration names.
type keyFlags struct {
	remote
	file string
}

func keysCommand() *cobra.Command {
	var k keyFlags
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Create, list and revoke API keys",
		Long: "API keys are the tokens that a server with auth.mode token asks for. They are managed at a server, by who has the\n" +
			"system's scope, or with --config directly in the store of that configuration: that is how the first key is made,\n" +
			"while the server is stopped. With PostgreSQL it may run. Where the environment alone is the configuration, without\n" +
			"a file, say --config \"\".",
		Example: "  tutti keys create --config tutti.yaml --name admin --scope tutti.WRITE\n" +
			"  tutti keys create --config \"\" --name admin --scope tutti.WRITE\n" +
			"  tutti keys create --name portal --scope STUDY-1.READ --scope STUDY-2.READ --expires 90d\n" +
			"  tutti keys list\n" +
			"  tutti keys revoke ID",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	k.addFlags(cmd)
	// The default is not the environment's TUTTI_CONFIG: that would turn every call from the server to its store.
	cmd.PersistentFlags().StringVar(&k.file, "config", "", "manage the keys in the store of this configuration `file` (YAML), or with \"\" in that of the environment's configuration, not at a server")
	cmd.AddCommand(keysCreateCommand(&k), keysListCommand(&k), keysRevokeCommand(&k))
	return cmd
}

func keysCreateCommand(k *keyFlags) *cobra.Command {
	var name, expires string
	var scopes []string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make an API key",
		Long: "Make an API key and write it to stdout, alone on its line. It is shown this once and cannot be read again; what\n" +
			"else there is to say goes to stderr.\n\n" +
			"Scopes, as they are called unless auth.systemScope and its like say otherwise:\n\n" +
			"  tutti.WRITE           everything\n" +
			"  <organization>.WRITE  index, submit and publish in that organization\n" +
			"  <organization>.READ   read what that organization has not published",
		Example: "  TUTTI_TOKEN=$(tutti keys create --config tutti.yaml --name admin --scope tutti.WRITE)\n" +
			"  tutti keys create --name uploads --scope STUDY-1.WRITE --expires 90d\n" +
			"  tutti keys create --name visitor --scope STUDY-1.READ --expires 2027-01-31",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case name == "":
				return usage(cmd, "give a --name that says what the key is for")
			case len(scopes) == 0:
				return usage(cmd, "give a --scope, such as --scope tutti.WRITE")
			}
			end, err := expiry(expires, time.Now())
			if err != nil {
				return usage(cmd, err.Error())
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
	flags.StringVar(&name, "name", "", "what the key is for, a `text` that lists and logs show")
	flags.StringArrayVar(&scopes, "scope", nil, "what the key allows, a `scope`; may be given several times")
	flags.StringVar(&expires, "expires", "", "when the key ends, a `time`: after 90d or 12h, at the start of 2027-01-31 (UTC), or at 2027-01-31T12:00:00Z; never unless given")
	complete(cmd, "name")
	complete(cmd, "scope")
	complete(cmd, "expires", "30d", "90d", "365d")
	return cmd
}

func printNewKey(cmd *cobra.Command, k *keyFlags, key client.APIKey) error {
	if k.json() {
		return printKeyJSON(cmd, key.Raw, key)
	}
	// The key is all of stdout, so that a shell can take it into a variable.
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), display.Printable(key.Key)); err != nil {
		return err
	}
	ends := "does not expire"
	if !key.ExpiresAt.IsZero() {
		ends = "expires " + display.Time(key.ExpiresAt)
	}
	_, err := fmt.Fprintln(cmd.ErrOrStderr(), display.Printable(fmt.Sprintf(
		"key %s, %s, allows %s and %s; keep it now, it is not shown again", key.ID, key.Name, strings.Join(key.Scopes, " "), ends)))
	return err
}

// printKeyJSON writes raw, what a server answered, or v in its form where the store was asked.
func printKeyJSON(cmd *cobra.Command, raw json.RawMessage, v any) error {
	if raw == nil {
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return fmt.Errorf("writing the key: %w", err)
		}
	}
	return printJSON(cmd.OutOrStdout(), raw)
}

func keysListCommand(k *keyFlags) *cobra.Command {
	return &cobra.Command{
		Use:               "list",
		Short:             "List API keys, the last made first",
		Long:              "List API keys, the last made first, those that expired or were revoked too. The keys themselves are not kept.\n\n" + localTimes,
		Example:           "  tutti keys list\n  tutti keys list --config tutti.yaml --output json",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return k.manage(cmd, func(ctx context.Context, m keyManager) error {
				list, err := m.Keys(ctx)
				if err != nil {
					return err
				}
				if k.json() {
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
		Short: "End an API key",
		Long: "End an API key for good: the server takes it no more, other processes on the same store within moments. A key that was\n" +
			"revoked before stays so, and is no error. The id is the key's in the list, not the key itself.",
		Example: "  tutti keys revoke ID",
		Args:    arguments(1, "give the id of one key"),
		ValidArgsFunction: func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if cmd.Flags().Changed("config") {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeIDs(&k.remote, 1, keyIDs)(cmd, given, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return k.manage(cmd, func(ctx context.Context, m keyManager) error {
				key, err := m.RevokeKey(ctx, args[0])
				if err != nil {
					return err
				}
				if k.json() {
					return printKeyJSON(cmd, key.Raw, key)
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), display.Printable("revoked "+key.ID+", "+key.Name))
				return err
			})
		},
	}
}

// keyIDs offers the keys that have not been revoked.
func keyIDs(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	list, err := c.Keys(ctx)
	if err != nil {
		return nil, err
	}
	var found []cobra.Completion
	for _, key := range list.Keys {
		if key.RevokedAt.IsZero() {
			found = append(found, cobra.CompletionWithDesc(key.ID, display.Printable(key.Name)))
		}
	}
	return found, nil
}
