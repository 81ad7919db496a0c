"""Parts shared by the tests of several rooms."""
