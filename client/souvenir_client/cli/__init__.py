"""The command line: what a person or a script does with a service, one module a group of commands.

`root` holds the tree, `options` what every command takes, `output` how anything is printed, `failures` how a failure
ends. A command's module is imported when the command is called; `rich` when something is drawn.
"""
