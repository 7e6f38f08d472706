package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

func (a *app) userCommands() *cobra.Command {
	return family("user", "Users",
		a.command("list", "List all users", cobra.NoArgs, func(c *client.Client, _ []string) (any, error) {
			users, err := c.Users()
			var out list
			for _, u := range users {
				out = append(out, userRecord(u))
			}
			return out, err
		}),
		a.onUser("get USER", "Show a user and its permissions", func(c *client.Client, id wire.Identifier) (any, error) {
			d, err := c.User(id)
			if err != nil {
				return nil, err
			}
			return append(userRecord(d.UserRecord), permissionFields(d.Permissions)...), nil
		}),
		a.createUser(), a.updateUser(),
		a.command("password USER CURRENT NEW", "Change a password", cobra.ExactArgs(3), func(c *client.Client, args []string) (any, error) {
			id, err := identifier(args[0])
			if err != nil {
				return nil, err
			}
			return nil, c.ChangePassword(wire.ChangePasswordRequest{User: id, Current: []byte(args[1]), New: []byte(args[2])})
		}),
		a.onUser("delete USER", "Delete a user", func(c *client.Client, id wire.Identifier) (any, error) {
			return nil, c.DeleteUser(id)
		}),
	)
}

func (a *app) onUser(use, short string, do func(*client.Client, wire.Identifier) (any, error)) *cobra.Command {
	return a.command(use, short, cobra.ExactArgs(1), func(c *client.Client, args []string) (any, error) {
		id, err := identifier(args[0])
		if err != nil {
			return nil, err
		}
		return do(c, id)
	})
}

func (a *app) createUser() *cobra.Command {
	var inactive bool
	cmd := a.command("create NAME PASSWORD", "Make a user without permissions", cobra.ExactArgs(2), func(c *client.Client, args []string) (any, error) {
		q := wire.CreateUserRequest{Username: []byte(args[0]), Password: []byte(args[1]), Status: wire.UserActive}
		if inactive {
			q.Status = wire.UserInactive
		}
		d, err := c.CreateUser(q)
		if err != nil {
			return nil, err
		}
		return userRecord(d.UserRecord), nil
	})
	cmd.Flags().BoolVar(&inactive, "inactive", false, "the user may not log in yet")
	return cmd
}

func (a *app) updateUser() *cobra.Command {
	var name, status string
	cmd := a.command("update USER", "Change a user's name or status", cobra.ExactArgs(1), func(c *client.Client, args []string) (any, error) {
		id, err := identifier(args[0])
		if err != nil {
			return nil, err
		}
		q := wire.UpdateUserRequest{User: id, HasStatus: status != ""}
		if name != "" {
			q.Username = []byte(name)
		}
		switch status {
		case "", "active":
			q.Status = wire.UserActive
		case "inactive":
			q.Status = wire.UserInactive
		default:
			return nil, usageError{fmt.Errorf("--status %q: want active or inactive", status)}
		}
		return nil, c.UpdateUser(q)
	})
	cmd.Flags().StringVar(&name, "name", "", "another name")
	cmd.Flags().StringVar(&status, "status", "", "active or inactive")
	return cmd
}

func userRecord(u wire.UserRecord) record {
	status := "active"
	if u.Status == wire.UserInactive {
		status = "inactive"
	}
	return record{{"id", u.ID}, {"name", u.Username}, {"status", status}, {"created_at", instant(u.CreatedAt)}}
}

func (a *app) tokenCommands() *cobra.Command {
	var expiry time.Duration
	create := a.command("create NAME", "Make a personal access token; its text is shown once", cobra.ExactArgs(1), func(c *client.Client, args []string) (any, error) {
		if expiry < 0 {
			return nil, usageError{fmt.Errorf("--expiry %v: want 0 or more", expiry)}
		}
		token, err := c.CreateToken(args[0], uint64(expiry.Microseconds()))
		if err != nil {
			return nil, err
		}
		return record{{"name", args[0]}, {"token", token}}, nil
	})
	create.Flags().DurationVar(&expiry, "expiry", 0, "how long it is valid; 0: for ever")
	return family("token", "Your personal access tokens",
		a.command("list", "List your tokens", cobra.NoArgs, func(c *client.Client, _ []string) (any, error) {
			tokens, err := c.Tokens()
			var out list
			for _, t := range tokens {
				out = append(out, record{{"name", t.Name}, {"expires_at", instant(t.ExpiryAt)}})
			}
			return out, err
		}),
		create,
		a.command("delete NAME", "Delete a token", cobra.ExactArgs(1), func(c *client.Client, args []string) (any, error) {
			return nil, c.DeleteToken(args[0])
		}),
	)
}
