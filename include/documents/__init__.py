"""What commands have to say, made once as a ``Document``, and shown in a terminal or as an HTML page."""
