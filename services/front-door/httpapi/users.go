package httpapi

import (
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

type userJSON struct {
	ID        uint32              `json:"id"`
	CreatedAt uint64              `json:"created_at"`
	Status    string              `json:"status"`
	Username  string              `json:"username"`
	Options   map[string]struct{} `json:"options"`
}

type userDetailsJSON struct {
	ID          uint32              `json:"id"`
	CreatedAt   uint64              `json:"created_at"`
	Status      string              `json:"status"`
	Username    string              `json:"username"`
	Permissions *permissionsJSON    `json:"permissions"`
	Options     map[string]struct{} `json:"options"`
}

var statusNames = []string{"active", "inactive"}

func statusName(s wire.UserStatus) string {
	if s == wire.UserActive {
		return statusNames[0]
	}
	return statusNames[1]
}

// status reads "active" or "inactive".
func (r *reader) status() wire.UserStatus {
	switch string(r.str()) {
	case statusNames[0]:
		return wire.UserActive
	case statusNames[1]:
		return wire.UserInactive
	}
	r.unfit("Expected active or inactive.")
	return 0
}

// none is how the options of things without options are shown.
var none = map[string]struct{}{}

// getUsers serves GET /users.
func getUsers(c *call) error {
	if err := c.plain(); err != nil {
		return err
	}
	return c.read(wire.CmdGetUsers, nil, func(b []byte) error {
		users, err := wire.DecodeUsers(b)
		if err != nil {
			return err
		}
		out := make([]userJSON, len(users))
		for i, u := range users {
			out[i] = userJSON{ID: u.ID, CreatedAt: u.CreatedAt, Status: statusName(u.Status), Username: u.Username, Options: none}
		}
		return c.json(out)
	})
}

// getUser serves GET /users/{user}; "me" is the caller.
func getUser(c *call) error {
	id, err := c.id(0)
	if err == nil {
		err = c.plain()
	}
	if err != nil {
		return err
	}
	if c.params[0] == "me" {
		if c.caller.ghost {
			return refusal(wire.CodeUnauthorized)
		}
		id = wire.NumericID(c.caller.user)
	}
	return c.read(wire.CmdGetUser, wire.UserTarget{User: id}.Append(nil), func(b []byte) error {
		if len(b) == 0 {
			if !c.api.local.View().Can(c.caller.user, metadata.RightReadUsers, 0, 0) {
				return refusal(wire.CodeUnauthorized)
			}
			return errMissing
		}
		return c.userDetails(b)
	})
}

func (c *call) userDetails(b []byte) error {
	u, err := wire.DecodeUserDetails(b)
	if err != nil {
		return err
	}
	return c.json(userDetailsJSON{
		ID: u.ID, CreatedAt: u.CreatedAt, Status: statusName(u.Status), Username: u.Username, Permissions: showPermissions(u.Permissions), Options: none,
	})
}

// createUser serves POST /users.
func createUser(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	var q wire.CreateUserRequest
	b.record([]string{"username", "password", "status", "permissions"}, 3, func(i int) {
		switch i {
		case 0:
			q.Username = b.str()
		case 1:
			q.Password = b.str()
		case 2:
			q.Status = b.status()
		case 3:
			q.Permissions = b.permissions()
		}
	})
	if err := b.end(); err != nil {
		return err
	}
	if code := checkUsername(q.Username); code != 0 {
		return refusal(code)
	}
	if code := checkPassword(q.Password); code != 0 {
		return refusal(code)
	}
	return c.write(wire.OpCreateUser, q.Append(nil), c.userDetails)
}

func checkUsername(name []byte) wire.Code {
	if len(name) < wire.MinUsername || len(name) > wire.MaxUsername {
		return wire.CodeInvalidUsername
	}
	return 0
}

func checkPassword(password []byte) wire.Code {
	if len(password) < wire.MinPassword || len(password) > wire.MaxPassword {
		return wire.CodeInvalidPassword
	}
	return 0
}

// updateUser serves PUT /users/{user}.
func updateUser(c *call) error {
	id, err := c.id(0)
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	q := wire.UpdateUserRequest{User: id}
	b.record([]string{"username", "status", "options"}, 0, func(i int) {
		switch {
		case i == 2:
			q.Options = b.options()
		case b.null():
		case i == 0:
			q.Username = b.str()
			if code := checkUsername(q.Username); code != 0 && b.fault == nil {
				err = refusal(code)
			}
		case i == 1:
			q.HasStatus, q.Status = true, b.status()
		}
	})
	if fault := b.end(); fault != nil {
		return fault
	}
	if err != nil {
		return err
	}
	return c.write(wire.OpUpdateUser, q.Append(nil), c.noContent)
}

// deleteUser serves DELETE /users/{user}.
func deleteUser(c *call) error {
	id, err := c.id(0)
	if err != nil {
		return err
	}
	return c.write(wire.OpDeleteUser, wire.UserTarget{User: id}.Append(nil), c.noContent)
}

// changePassword serves PUT /users/{user}/password.
func changePassword(c *call) error {
	id, err := c.id(0)
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	q := wire.ChangePasswordRequest{User: id}
	b.record([]string{"current_password", "new_password"}, 2, func(i int) {
		if text := b.str(); i == 0 {
			q.Current = text
		} else {
			q.New = text
		}
	})
	if err := b.end(); err != nil {
		return err
	}
	if code := checkPassword(q.Current); code != 0 {
		return refusal(code)
	}
	if code := checkPassword(q.New); code != 0 {
		return refusal(code)
	}
	return c.write(wire.OpChangePassword, q.Append(nil), c.noContent)
}

// updatePermissions serves PUT /users/{user}/permissions.
func updatePermissions(c *call) error {
	id, err := c.id(0)
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	q := wire.UpdatePermissionsRequest{User: id}
	b.record([]string{"permissions"}, 0, func(int) { q.Permissions = b.permissions() })
	if err := b.end(); err != nil {
		return err
	}
	return c.write(wire.OpUpdatePermissions, q.Append(nil), c.noContent)
}
