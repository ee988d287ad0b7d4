"""Sessions and blobs that outlive the process; the seams are those of `leadline.core.session`."""
