"""The form that makes and edits an experiment file: fields as text, the tables of the file, its text, the pages."""
