"""The command line of the client, one module per group of commands.

`root` contains the tree, `options` the options of every command, `output` the printing, `failures` the exit codes. A
command's module is imported when the command is called; `rich` when something is drawn.
"""
