"""One partition on this broker: leadership, ISR, high watermark; and all that are hosted here."""
